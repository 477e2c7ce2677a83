// The page of a simulated collection: estimates with intervals, all values in a table, errors against theory.

const COLOURS = ["accent", "lift-4", "lift-0", "lift-2", "lift-5", "lift-3", "good", "lift-1", "bad", "edge", "soft", "text"];
const decimals = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const valueName = (row) => element("bdi", "item", data.values[row]);

const plainAxis = () => ({
  axisLine: { lineStyle: { color: colour("line") } },
  axisLabel: { color: colour("soft") },
  splitLine: { lineStyle: { color: colour("line") } },
  nameTextStyle: { color: colour("soft") },
});

/** Estimates of the most frequent values; `chosen()` is the mechanism that is looked at. */
function estimatesChart(chosen) {
  const rows = Array.from({ length: Math.min(data.top, data.values.length) }, (_, row) => row);
  const { draw } = drawn(document.getElementById("estimates-chart"), () => {
    const { name, estimates, low, high, processed } = data.mechanisms[chosen()];
    const dots = (title, values, symbol, key) => ({
      type: "scatter",
      name: title,
      data: rows.map((row) => [row, values[row]]),
      symbol,
      symbolSize: symbol === "rect" ? [Math.max(8, Math.min(28, 500 / rows.length)), 3] : 8,
      itemStyle: { color: colour(key) },
    });
    const ends = rows.flatMap((row) => [{ name: `${row} low`, value: [row, low[row]] }, { name: `${row} high`, value: [row, high[row]] }]);
    return {
      grid: { left: 70, right: 16, top: narrow() ? 84 : 58, bottom: 90 },
      legend: { top: 0, left: 0, itemWidth: 12, itemHeight: 12, textStyle: { color: colour("text") }, inactiveColor: colour("line") },
      tooltip: {
        ...tooltip(),
        formatter: ({ data: point }) => {
          const [row] = Array.isArray(point) ? point : point.value;
          const lines = [["count", formatCount(data.counts[row])], ["estimate", decimals.format(estimates[row])], ["interval", `${decimals.format(low[row])} to ${decimals.format(high[row])}`]];
          return hint(element("p", "", valueName(row)), processed ? [...lines, [data.processing, decimals.format(processed[row])]] : lines);
        },
      },
      xAxis: {
        ...plainAxis(),
        type: "category",
        data: rows.map((row) => shortened(data.values[row], 16)),
        axisLabel: { color: colour("soft"), rotate: 50, interval: rows.length > 40 ? "auto" : 0 },
      },
      yAxis: { ...plainAxis(), type: "value", name: "users", nameTextStyle: { color: colour("soft"), align: "left" } },
      series: [
        // An interval is an edge between two nodes that are not seen.
        {
          type: "graph",
          name: "interval",
          coordinateSystem: "cartesian2d",
          data: ends,
          links: rows.map((row) => ({ source: 2 * row, target: 2 * row + 1 })),
          symbolSize: 0.1,
          silent: true,
          itemStyle: { color: colour("accent") },
          lineStyle: { color: colour("accent"), width: 2, opacity: 0.6 },
        },
        dots("true count", data.counts, "rect", "text"),
        dots(`estimate by ${name}`, estimates, "circle", "accent"),
        ...(processed ? [dots(`after ${data.processing}`, processed, "diamond", "lift-4")] : []),
      ],
    };
  });
  return draw;
}

/** Errors in standard deviations beside normal quantiles, and the line on which they should lie. */
function theoryChart() {
  const reach = data.mechanisms.flatMap(({ errors }) => errors.flat()).reduce((most, value) => Math.max(most, Math.abs(value)), 3);
  const most = Math.ceil(reach);
  drawn(document.getElementById("theory-chart"), () => ({
    grid: { left: 58, right: 22, top: narrow() ? 76 : 54, bottom: 52 },
    legend: { top: 0, left: 0, itemWidth: 12, itemHeight: 12, textStyle: { color: colour("text") }, inactiveColor: colour("line") },
    tooltip: {
      ...tooltip(),
      formatter: ({ data: [expected, observed], seriesName }) => hint(
        element("p", "", seriesName), [["expected", formatMeasure(expected)], ["observed", formatMeasure(observed)]]),
    },
    xAxis: { ...plainAxis(), type: "value", name: "expected, in standard deviations", nameLocation: "middle", nameGap: 30, min: -most, max: most },
    yAxis: { ...plainAxis(), type: "value", name: "observed", min: -most, max: most },
    series: [
      {
        type: "graph",
        coordinateSystem: "cartesian2d",
        data: [{ name: "low", value: [-most, -most] }, { name: "high", value: [most, most] }],
        links: [{ source: 0, target: 1 }],
        symbolSize: 0.1,
        silent: true,
        itemStyle: { color: colour("edge") },
        lineStyle: { color: colour("edge"), width: 1, opacity: 1 },
      },
      ...data.mechanisms.map(({ name, errors }, place) => ({
        type: "scatter",
        name,
        data: errors,
        symbolSize: 5,
        itemStyle: { color: colour(COLOURS[place % COLOURS.length]), opacity: 0.75 },
      })),
    ],
  }));
}

/** All values of the page; the columns of estimates are of the mechanism `chosen()`. */
function valuesTable(chosen) {
  const of = (key) => (row) => data.mechanisms[chosen()][key][row];
  const oneDecimal = (value) => decimals.format(value);
  const columns = [
    listColumn("Value", valueName, 3),
    numberColumn("Count", (row) => data.counts[row], formatCount, 1),
    numberColumn("Estimate", of("estimates"), oneDecimal, 0),
    numberColumn("Low", of("low"), oneDecimal, 3),
    numberColumn("High", of("high"), oneDecimal, 3),
    ...(data.processing ? [numberColumn(data.processing, of("processed"), oneDecimal, 2)] : []),
  ];
  const shown = table(document.getElementById("values-table"), data.values.length, columns, "Count");
  const names = data.values.map((name) => name.toLowerCase());
  shown.on("tableBuilt", () => {
    filtered(document.getElementById("values-filters"), shown, data.values.length, "values", (fields) => {
      const wanted = fields.text.value.toLowerCase();
      return ({ row }) => names[row].includes(wanted);
    });
  });
  return shown;
}

const choices = document.getElementById("estimates-choices");
const chosen = () => Number(choices.elements.mechanism.value);
choices.hidden = data.mechanisms.length < 2;
choices.addEventListener("submit", (event) => event.preventDefault());
whenNear(document.getElementById("estimates"), () => {
  const redraw = estimatesChart(chosen);
  const shown = valuesTable(chosen);
  choices.addEventListener("change", () => {
    redraw();
    shown.getRows().forEach((row) => row.reformat());
    shown.setSort(shown.getSorters().map(({ field, dir }) => ({ column: field, dir })));
  });
});
whenNear(document.getElementById("theory"), theoryChart);
