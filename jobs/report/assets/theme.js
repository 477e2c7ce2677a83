// Charts in the colours of the page, drawn anew when these change, for paper too.

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const drawings = [];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** A chart that `options` describes in today's colours; gives the chart and what draws it anew. */
function drawn(holder, options) {
  const chart = libraries.init(holder, null, { renderer: "canvas" });
  holder.chart = chart;  // for who looks at a page by a script
  const draw = () => {
    chart.clear();
    chart.setOption({ animation: false, textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: colour("text") }, ...options() });
  };
  new ResizeObserver(() => chart.resize()).observe(holder);
  drawings.push({ chart, draw });
  draw();
  return { chart, draw };
}

const drawAll = () => drawings.forEach((each) => { each.chart.resize(); each.draw(); });
dark.addEventListener("change", drawAll);
window.addEventListener("beforeprint", () => {
  document.documentElement.classList.add("printing");
  document.querySelectorAll("details").forEach((details) => { details.dataset.open = details.open ? "1" : ""; details.open = true; });
  drawAll();
});
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("printing");
  document.querySelectorAll("details").forEach((details) => { details.open = details.dataset.open === "1"; });
  drawAll();
});

/** What a tooltip shows: a title of items and lines of names and numbers, all as text. */
function hint(title, lines) {
  return element("div", "hint", title, element("dl", "", ...lines.flatMap(([name, value]) => [element("dt", "", name), element("dd", "", value)])));
}

const tooltip = () => ({
  className: "tooltip",
  backgroundColor: colour("paper"),
  borderColor: colour("line"),
  textStyle: { color: colour("text"), fontSize: 13 },
  confine: true,
  transitionDuration: 0,
});
