// Where the circles and labels of a network stand: over the whole width, and no label on another or on a circle.

const STEPS = 250;
const FONT = 12;
const GAP = 4;

/** How wide texts are, in the font of charts. */
function widths(texts) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${FONT}px ${getComputedStyle(document.body).fontFamily}`;
  return texts.map((text) => pen.measureText(text).width);
}

/**
 * Places for nodes with a `radius` and a `label` below, in an area; links are pairs of positions in `nodes`, with a
 * weight from 0 to 1. Linked nodes attract, all repel [Fruchterman and Reingold 1991]; the picture is then stretched to the area,
 * and what overlaps is pushed apart. Gives x, y and whether the label has room, the earlier nodes first.
 */
function places(nodes, links, width, height) {
  const wide = widths(nodes.map(({ label }) => label));
  const boxes = nodes.map(({ radius }, node) => ({
    half: Math.min(Math.max(wide[node] / 2, radius) + GAP, width / 2 - 1),
    above: radius + GAP,
    below: radius + FONT + 2 * GAP,
  }));
  const at = stretched(attracted(nodes.length, links), boxes, width, height);
  apart(at, boxes, width, height);
  const shown = [];
  return at.map(({ x, y }, node) => {
    const label = { left: x - wide[node] / 2, right: x + wide[node] / 2, top: y + nodes[node].radius + 1, bottom: y + nodes[node].radius + GAP + FONT };
    const hits = (box) => box.left < label.right && label.left < box.right && box.top < label.bottom && label.top < box.bottom;
    const onCircle = at.some((other, place) => place !== node && hits({
      left: other.x - nodes[place].radius, right: other.x + nodes[place].radius, top: other.y - nodes[place].radius, bottom: other.y + nodes[place].radius,
    }));
    const labelled = !onCircle && label.left >= 0 && label.right <= width && !shown.some(hits);
    if (labelled) shown.push(label);
    return { x, y, labelled };
  });
}

function attracted(number, links) {
  const far = 1 / Math.sqrt(number);
  // On a spiral at first, so that the same result has the same picture.
  const at = Array.from({ length: number }, (_, node) => {
    const [turn, out] = [2.399963 * node, 0.5 * Math.sqrt((node + 0.5) / number)];
    return { x: out * Math.cos(turn), y: out * Math.sin(turn) };
  });
  for (let step = 0; step < STEPS; step++) {
    const most = 0.1 * (1 - step / STEPS);
    const pull = at.map(({ x, y }) => ({ x: -0.3 * x, y: -0.3 * y }));
    for (let i = 0; i < number; i++) {
      for (let j = 0; j < i; j++) {
        const [x, y] = [at[i].x - at[j].x, at[i].y - at[j].y];
        const push = far ** 2 / Math.max(x * x + y * y, 1e-6);
        pull[i].x += x * push; pull[i].y += y * push;
        pull[j].x -= x * push; pull[j].y -= y * push;
      }
    }
    for (const [i, j, weight] of links) {
      const [x, y] = [at[i].x - at[j].x, at[i].y - at[j].y];
      const draw = (0.5 + weight) * Math.hypot(x, y) / far;
      pull[i].x -= x * draw; pull[i].y -= y * draw;
      pull[j].x += x * draw; pull[j].y += y * draw;
    }
    at.forEach((place, node) => {
      const length = Math.hypot(pull[node].x, pull[node].y) || 1;
      const go = Math.min(length, most) / length;
      place.x += pull[node].x * go;
      place.y += pull[node].y * go;
    });
  }
  return at;
}

function stretched(at, boxes, width, height) {
  const along = (name) => {
    const values = at.map((place) => place[name]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return (value) => (high > low ? (value - low) / (high - low) : 0.5);
  };
  const [x, y] = [along("x"), along("y")];
  return at.map((place, node) => ({
    x: boxes[node].half + x(place.x) * (width - 2 * boxes[node].half),
    y: boxes[node].above + y(place.y) * (height - boxes[node].above - boxes[node].below),
  }));
}

/** Pushes boxes that overlap apart and keeps them in the area: on the side on which that is shorter, or now and then the other. */
function apart(at, boxes, width, height) {
  const move = (node, x, y) => {
    at[node].x = Math.min(Math.max(at[node].x + x, boxes[node].half), width - boxes[node].half);
    at[node].y = Math.min(Math.max(at[node].y + y, boxes[node].above), height - boxes[node].below);
  };
  for (let step = 0, moved = true; moved && step < 4 * STEPS; step++) {
    moved = false;
    for (let i = 0; i < at.length; i++) {
      for (let j = 0; j < i; j++) {
        const [first, second] = at[i].y < at[j].y ? [i, j] : [j, i];
        const over = boxes[i].half + boxes[j].half - Math.abs(at[i].x - at[j].x);
        const deep = boxes[first].below + boxes[second].above - (at[second].y - at[first].y);
        if (over <= 0.1 || deep <= 0.1) continue;
        moved = true;
        if ((deep < over) === (step % 4 < 3)) {
          move(first, 0, -deep / 2); move(second, 0, deep / 2);
        } else {
          const side = at[i].x < at[j].x ? 1 : -1;
          move(i, -side * over / 2, 0); move(j, side * over / 2, 0);
        }
      }
    }
  }
}
