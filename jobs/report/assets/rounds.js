// Charts of a collection: estimates of the leading values with intervals, and their course over the rounds.

const measured = data.mean ? "mean" : "clients";
const shownFigure = (value) => (data.mean ? formatMeasure(value) : decimals.format(value));
const shownShare = (value) => (data.mean ? formatMeasure(value) : formatPercent(value / 100));
const chartGrid = (bottom) => ({ left: 70, right: 16, top: narrow() ? 84 : 58, bottom });

/** Estimates of the leading values. */
function leadersChart() {
  const rows = Array.from({ length: Math.min(data.top, data.values.length) }, (_, row) => row);
  const dots = (name, values, symbol, key) => ({
    type: "scatter",
    name,
    data: rows.map((row) => [row, values[row]]),
    symbol,
    symbolSize: 8,
    itemStyle: { color: colour(key) },
  });
  drawn(document.getElementById("estimates-chart"), () => ({
    grid: chartGrid(90),
    legend: plainLegend(),
    tooltip: {
      ...tooltip(),
      formatter: ({ data: [row] }) => hint(element("p", "", valueName(row)), [
        ["estimate", shownFigure(data.estimates[row])],
        ["interval", `${shownFigure(data.low[row])} to ${shownFigure(data.high[row])}`],
        ...(data.processed ? [[data.processing, shownFigure(data.processed[row])]] : []),
      ]),
    },
    xAxis: namesAxis(shortened(rows.map((row) => data.values[row]), 16)),
    yAxis: countsAxis(measured),
    series: [
      edges("interval", rows.map((row) => [[row, data.low[row]], [row, data.high[row]]]), "accent", { width: 2, opacity: 0.6 }),
      dots("estimate", data.estimates, "circle", "accent"),
      ...(data.processed ? [dots(`after ${data.processing}`, data.processed, "diamond", "lift-4")] : []),
    ],
  }));
}

/** The leading values round by round; a value's dots, line and intervals come and go together. */
function roundsChart() {
  const places = data.rounds.map((_, place) => place);
  const shift = (value) => (data.courses.length > 1 ? 0.3 * (value / (data.courses.length - 1) - 0.5) : 0);
  const labels = shortened(data.courses.map(({ value }) => value), 24);
  drawn(document.getElementById("rounds-chart"), () => ({
    grid: chartGrid(52),
    legend: plainLegend(),
    tooltip: {
      ...tooltip(),
      formatter: ({ data: [, , value, place] }) => {
        const { estimates, low, high } = data.courses[value];
        return hint(element("p", "", element("bdi", "item", data.courses[value].value)), [
          ["round", data.rounds[place]],
          [data.mean ? "mean" : "share", shownShare(estimates[place])],
          ["interval", `${shownShare(low[place])} to ${shownShare(high[place])}`],
        ]);
      },
    },
    xAxis: {
      ...plainAxis(),
      type: "value",
      min: -1,
      max: data.rounds.length,
      interval: 1,
      splitLine: { show: false },
      axisLabel: { color: colour("soft"), hideOverlap: true, formatter: (place) => data.rounds[place] ?? "" },
    },
    yAxis: { ...countsAxis(data.mean ? "mean" : "% of the reports"), axisLine: { onZero: false, lineStyle: { color: colour("line") } } },
    series: data.courses.flatMap(({ estimates, low, high }, value) => {
      const key = COLOURS[value % COLOURS.length];
      const label = labels[value];
      const known = places.filter((place) => estimates[place] !== null);
      const at = (place) => place + shift(value);
      const intervals = known.map((place) => [[at(place), low[place]], [at(place), high[place]]]);
      const steps = known.slice(1).map((place, before) => [[at(known[before]), estimates[known[before]]], [at(place), estimates[place]]]);
      return [
        {
          type: "scatter",
          name: label,
          data: known.map((place) => [at(place), estimates[place], value, place]),
          symbolSize: 8,
          itemStyle: { color: colour(key) },
        },
        edges(label, intervals, key, { width: 2, opacity: 0.6 }),
        edges(label, steps, key, { width: 1, opacity: 0.8 }),
      ];
    }),
  }));
}
