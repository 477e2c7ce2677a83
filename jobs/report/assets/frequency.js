// The page of a simulated collection: estimates with intervals, all values in a table, errors against theory.

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
    return {
      grid: { left: 70, right: 16, top: narrow() ? 84 : 58, bottom: 90 },
      legend: plainLegend(),
      tooltip: {
        ...tooltip(),
        formatter: ({ data: point }) => {
          const [row] = Array.isArray(point) ? point : point.value;
          const lines = [["count", formatCount(data.counts[row])], ["estimate", decimals.format(estimates[row])], ["interval", `${decimals.format(low[row])} to ${decimals.format(high[row])}`]];
          return hint(element("p", "", valueName(row)), processed ? [...lines, [data.processing, decimals.format(processed[row])]] : lines);
        },
      },
      xAxis: namesAxis(shortened(rows.map((row) => data.values[row]), 16)),
      yAxis: countsAxis("users"),
      series: [
        edges("interval", rows.map((row) => [[row, low[row]], [row, high[row]]]), "accent", { width: 2, opacity: 0.6 }),
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
    legend: plainLegend(),
    tooltip: {
      ...tooltip(),
      formatter: ({ data: [expected, observed], seriesName }) => hint(
        element("p", "", seriesName), [["expected", formatMeasure(expected)], ["observed", formatMeasure(observed)]]),
    },
    xAxis: { ...plainAxis(), type: "value", name: "expected, in standard deviations", nameLocation: "middle", nameGap: 30, min: -most, max: most },
    yAxis: { ...plainAxis(), type: "value", name: "observed", min: -most, max: most },
    series: [
      edges(undefined, [[[-most, -most], [most, most]]], "edge", { width: 1, opacity: 1 }),
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
