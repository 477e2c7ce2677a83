// What goes together: pairs of items, or items that rules lead to, as a network or as a matrix. Where supports are not
// disclosed, the count of an item or a pair is in how many itemsets it is, that of a link how many rules make it.

const MATRIX_ITEMS = 24;
const LABEL = 26;

/** All pairs of items that are frequent together, with the number of itemsets that hold both. */
function pairsInItemsets() {
  const alone = new Map();
  const pairs = new Map();
  for (let row = 0; row < itemsets.sets.number; row++) {
    const items = itemsets.sets.at(row);
    for (let i = 0; i < items.length; i++) {
      alone.set(items[i], (alone.get(items[i]) || 0) + 1);
      for (let j = i + 1; j < items.length; j++) {
        const key = items[i] * data.items.length + items[j];
        const pair = pairs.get(key);
        if (pair) pair.count++; else pairs.set(key, { a: items[i], b: items[j], count: 1 });
      }
    }
  }
  return { alone, pairs: [...pairs.values()] };
}

/** All pairs of items that are frequent together, with count and lift. */
function allPairs() {
  if (!counted) return pairsInItemsets();
  const alone = new Map();
  const pairs = [];
  for (let row = 0; row < itemsets.sets.number; row++) {
    if (itemsets.sets.length(row) === 1) alone.set(itemsets.sets.at(row)[0], itemsets.count[row]);
  }
  for (let row = 0; row < itemsets.sets.number; row++) {
    if (itemsets.sets.length(row) !== 2) continue;
    const [a, b] = itemsets.sets.at(row);
    const count = itemsets.count[row];
    if (alone.has(a) && alone.has(b)) pairs.push({ a, b, count, lift: ratioOf(count * data.rows, alone.get(a) * alone.get(b)) ?? 0 });
  }
  return { alone, pairs };
}

/** Links from each item of a rule's antecedent to each of its consequent, with the number of such rules. */
function linksInRules(number) {
  const links = new Map();
  for (let rule = 0; rule < rules.antecedent.number; rule++) {
    for (const a of rules.antecedent.at(rule)) {
      for (const b of rules.consequent.at(rule)) {
        const key = a * data.items.length + b;
        const link = links.get(key);
        if (link) link.count++; else links.set(key, { a, b, count: 1 });
      }
    }
  }
  return [...links.values()].sort((x, y) => y.count - x.count).slice(0, number);
}

/** Links from each item of a rule's antecedent to each of its consequent. */
function ruleLinks(by, number) {
  if (!counted) return linksInRules(number);
  const values = by === "lift" ? rules.lift : rules.count;
  const order = Array.from(rules.count.keys()).sort((x, y) => values[y] - values[x]).slice(0, number);
  const links = new Map();
  for (const rule of order) {
    for (const a of rules.antecedent.at(rule)) {
      for (const b of rules.consequent.at(rule)) {
        if (!links.has(`${a} ${b}`)) links.set(`${a} ${b}`, { a, b, count: rules.count[rule], lift: rules.lift[rule] ?? 0, rule });
      }
    }
  }
  return [...links.values()];
}

function pairsChart() {
  const { alone, pairs } = allPairs();
  const holder = document.getElementById("pairs-chart");
  const form = document.getElementById("pairs-choices");
  if (narrow()) form.elements.number.value = "20";
  const caption = document.getElementById("pairs-caption");
  if (!pairs.length) {
    document.getElementById("pairs").hidden = true;
    document.getElementById("pairs-empty").hidden = false;
    return;
  }
  const linked = form.querySelector("#pairs-links");
  linked.hidden = !(rules && rules.antecedent.number);
  const chosen = () => Object.fromEntries(new FormData(form));
  const ranked = (by, number) => pairs.slice().sort((x, y) => y[by] - x[by] || y.count - x.count).slice(0, number);

  const options = () => {
    const { view, by, links, number } = chosen();
    form.elements.number.closest("label").hidden = view === "matrix";
    linked.disabled = view === "matrix";
    if (view === "matrix") return matrix(by);
    return network(links === "rules" && !linked.hidden ? ruleLinks(by, Number(number)) : ranked(by, Number(number)), by, links === "rules" && !linked.hidden);
  };

  const itemLines = (count) => (counted ? [["count", formatCount(count)], ["support", formatPercent(supportOf(count))]] : [["itemsets", formatCount(count)]]);
  const pairHint = ({ a, b, count, lift }, directed) => hint(
    element("p", "", chips([a]), directed ? " ⇒ " : " + ", chips([b])),
    counted ? [...itemLines(count), ["lift", formatMeasure(lift)]] : [[directed ? "rules" : "itemsets", formatCount(count)]]);
  const which = (by) => (counted ? `of highest ${by}` : "in most itemsets");

  const network = (links, by, directed) => {
    const items = [...new Set(links.flatMap(({ a, b }) => [a, b]))];
    const most = Math.max(...items.map((item) => alone.get(item) || 1));
    const strongest = Math.max(...links.map((link) => link[by]));
    const larger = counted ? "more frequent items" : "items in more itemsets";
    if (directed) {
      const links = counted ? `The rules of highest ${by}` : "The links of most rules";
      caption.textContent = `${links}: an arrow goes from each item of the if side to each of the then side. Larger circles: ${larger}.`;
    } else {
      caption.textContent = `The ${formatCount(links.length)} pairs ${which(by)}, of ${formatCount(pairs.length)}. Thicker lines: ${counted ? `higher ${by}` : "more itemsets"}; larger circles: ${larger}.`;
    }
    caption.append(element("span", "on-screen", " Drag to move."));
    const position = new Map(items.map((item, place) => [item, place]));
    const names = shortened(items.map((item) => data.items[item]), narrow() ? 14 : LABEL);
    const radii = items.map((item) => (narrow() ? 0.6 : 1) * (4.5 + 13 * Math.sqrt((alone.get(item) || 1) / most)));
    const at = places(
      items.map((item, place) => ({ radius: radii[place], label: names[place] })),
      links.map((link) => [position.get(link.a), position.get(link.b), link[by] / strongest]),
      holder.clientWidth, holder.clientHeight);
    const [left, right] = [Math.min(...at.map(({ x }) => x)), Math.max(...at.map(({ x }) => x))];
    const [top, bottom] = [Math.min(...at.map(({ y }) => y)), Math.max(...at.map(({ y }) => y))];
    return {
      tooltip: {
        ...tooltip(),
        formatter: ({ dataType, data: shown }) => dataType === "edge"
          ? pairHint(shown.link, directed)
          : hint(element("p", "", chips([shown.item])), itemLines(alone.get(shown.item) || 0)),
      },
      series: [{
        type: "graph",
        layout: "none",
        left, top, width: Math.max(right - left, 1), height: Math.max(bottom - top, 1),
        roam: "move",
        draggable: true,
        label: { show: true, position: "bottom", distance: 3, color: colour("text"), fontSize: FONT, textBorderColor: colour("paper"), textBorderWidth: 3 },
        edgeSymbol: directed ? ["none", "arrow"] : ["none", "none"],
        edgeSymbolSize: 8,
        emphasis: { focus: "adjacency" },
        data: items.map((item, place) => ({
          id: String(item),
          item,
          name: names[place],
          x: at[place].x,
          y: at[place].y,
          label: { show: at[place].labelled },
          symbolSize: 2 * radii[place],
          itemStyle: { color: colour("accent"), borderColor: colour("paper"), borderWidth: 1.5 },
        })),
        links: links.map((link) => ({
          source: String(link.a),
          target: String(link.b),
          link,
          lineStyle: { width: 1 + 4 * (link[by] / strongest), color: colour("edge"), opacity: 0.65, curveness: directed ? 0.12 : 0 },
        })),
      }],
    };
  };

  const matrix = (by) => {
    const items = [];
    for (const { a, b } of ranked(by, pairs.length)) {
      for (const item of [a, b]) if (items.length < MATRIX_ITEMS && !items.includes(item)) items.push(item);
    }
    items.sort((x, y) => (alone.get(y) || 0) - (alone.get(x) || 0));
    const place = new Map(items.map((item, index) => [item, index]));
    const inside = pairs.filter(({ a, b }) => place.has(a) && place.has(b));
    // Lift is a ratio: twice as often and half as often are equally far from chance.
    const scaled = (pair) => (by === "lift" ? Math.log2(pair.lift) : pair.count);
    const cells = inside.flatMap((pair) => [[pair.a, pair.b], [pair.b, pair.a]].map(([x, y]) => ({
      value: [place.get(x), place.get(y), scaled(pair)], pair,
    })));
    const values = inside.map(scaled);
    const far = Math.max(...values.map(Math.abs), 0.1);
    caption.textContent = `The ${items.length} items with the pairs ${which(by)}, ${counted ? "the most frequent" : "those in most itemsets"} first. An empty cell: not frequent together.`;
    const labels = shortened(items.map((item) => data.items[item]), narrow() ? 10 : LABEL);
    const side = { type: "category", data: labels, axisTick: { show: false }, axisLine: { show: false }, splitArea: { show: false } };
    return {
      tooltip: { ...tooltip(), formatter: ({ data: shown }) => pairHint(shown.pair, false) },
      grid: { left: 8, right: 12, top: 8, bottom: 62, containLabel: true },
      xAxis: { ...side, axisLabel: { rotate: 60, color: colour("soft"), interval: 0, fontSize: narrow() ? 9 : 12 } },
      yAxis: { ...side, inverse: true, axisLabel: { color: colour("soft"), interval: 0, fontSize: narrow() ? 9 : 12 } },
      visualMap: {
        type: "continuous",
        orient: "horizontal",
        left: "center",
        bottom: 4,
        itemHeight: 160,
        calculable: true,
        min: by === "lift" ? -far : 0,
        max: by === "lift" ? far : Math.max(...values),
        inRange: { color: by === "lift" ? [colour("lift-0"), colour("lift-1"), colour("lift-4"), colour("lift-5")] : [colour("paper-2"), colour("accent")] },
        textStyle: { color: colour("soft") },
        formatter: (value) => (by === "lift" ? `× ${formatMeasure(2 ** value)}` : formatCount(Math.round(value))),
      },
      series: [{ type: "heatmap", data: cells, itemStyle: { borderColor: colour("paper"), borderWidth: 1 } }],
    };
  };

  const { draw } = drawn(holder, options);
  let width = holder.clientWidth;
  new ResizeObserver(() => {
    if (holder.clientWidth === width) return;
    width = holder.clientWidth;
    draw();
  }).observe(holder);
  form.addEventListener("change", draw);
}
