// Rules by support and confidence, their lift in colour; a rectangle drawn in it filters the table.

const LIFTS = [
  { most: 0.95, name: "lift below 0.95", colour: "lift-0" },
  { most: 1.05, name: "lift about 1", colour: "lift-1" },
  { most: 1.5, name: "lift to 1.5", colour: "lift-2" },
  { most: 3, name: "lift to 3", colour: "lift-3" },
  { most: 10, name: "lift to 10", colour: "lift-4" },
  { most: Infinity, name: "lift above 10", colour: "lift-5" },
  { most: null, name: "lift not known", colour: "soft" },
];
const MANY = 2000;

/** Draws the chart; gives `inside(rule)`, and calls `changed` when the rectangle changes. */
function scatter(holder, changed) {
  const points = LIFTS.map(() => []);
  rules.count.forEach((count, rule) => {
    const lift = rules.lift[rule];
    const kind = LIFTS.findIndex(({ most }) => (lift === null ? most === null : lift <= most));
    points[kind].push([100 * supportOf(count), rules.confidence[rule] ?? 0, rule]);
  });
  const smallest = 100 * supportOf(rules.count.reduce((a, b) => Math.min(a, b)));
  const greatest = 100 * supportOf(rules.count.reduce((a, b) => Math.max(a, b)));
  const lowest = rules.confidence.reduce((a, b) => Math.min(a, b));
  const logarithmic = smallest > 0 && greatest > 8 * smallest;
  const many = rules.count.length > MANY;
  let area = null;

  const axis = () => ({
    axisLine: { lineStyle: { color: colour("line") } },
    axisLabel: { color: colour("soft") },
    splitLine: { lineStyle: { color: colour("line") } },
    nameTextStyle: { color: colour("soft") },
    nameGap: 30,
  });
  const options = () => ({
    grid: { left: 58, right: 22, top: narrow() ? 76 : 54, bottom: 52 },
    legend: { top: 0, left: 0, itemWidth: 12, itemHeight: 12, type: "plain", textStyle: { color: colour("text") }, inactiveColor: colour("line") },
    tooltip: {
      ...tooltip(),
      formatter: ({ data: [support, confidence, rule] }) => hint(
        element("p", "", chips(rules.antecedent.at(rule)), " ⇒ ", chips(rules.consequent.at(rule))),
        [["support", formatPercent(support / 100)], ["confidence", formatMeasure(confidence)], ["lift", rules.lift[rule] === null ? "not known" : formatMeasure(rules.lift[rule])]]),
    },
    xAxis: {
      ...axis(),
      type: logarithmic ? "log" : "value",
      logBase: 2,
      name: logarithmic ? "support (logarithmic)" : "support",
      nameLocation: "middle",
      min: logarithmic ? smallest / 1.15 : Math.max(0, smallest - 0.1 * (greatest - smallest || smallest)),
      max: logarithmic ? greatest * 1.15 : greatest + 0.1 * (greatest - smallest || greatest),
      axisLabel: { color: colour("soft"), formatter: (value) => `${Number(value.toPrecision(2))} %`, hideOverlap: true, showMinLabel: false, showMaxLabel: false },
    },
    yAxis: {
      ...axis(),
      name: "confidence",
      nameGap: 12,
      nameTextStyle: { color: colour("soft"), align: "left" },
      min: Math.floor(lowest * 5) / 5,
      max: 1,
    },
    brush: {
      xAxisIndex: 0,
      seriesIndex: [],
      brushMode: "single",
      toolbox: [],
      brushStyle: { color: "rgba(128,128,128,0.15)", borderColor: colour("accent"), borderWidth: 1.5 },
      outOfBrush: { colorAlpha: 1 },
      throttleType: "debounce",
      throttleDelay: 200,
    },
    series: LIFTS.map(({ name, colour: key }, place) => ({
      type: "scatter",
      name,
      data: points[place],
      symbolSize: many ? 5 : 9,
      large: many,
      itemStyle: { color: colour(key), opacity: many ? 0.55 : 0.75 },
      emphasis: { scale: 1.5 },
    })).filter((series) => series.data.length),
  });
  const { chart, draw } = drawn(holder, options);
  const armed = () => chart.dispatchAction({ type: "takeGlobalCursor", key: "brush", brushOption: { brushType: "rect", brushMode: "single" } });
  armed();
  drawings.find((each) => each.draw === draw).draw = () => { draw(); armed(); };
  chart.on("brushEnd", ({ areas }) => {
    area = areas.length ? areas[0].coordRange : null;
    changed(area);
  });
  return {
    inside: (rule) => {
      if (area === null) return true;
      const [[left, right], [low, high]] = area;
      const support = 100 * supportOf(rules.count[rule]);
      return support >= left && support <= right && rules.confidence[rule] >= low && rules.confidence[rule] <= high;
    },
    clear: () => {
      area = null;
      chart.dispatchAction({ type: "brush", areas: [] });
    },
  };
}
