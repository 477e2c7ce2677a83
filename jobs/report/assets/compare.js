// The page of a comparison: F1 by model and ε, and errors of supports by itemset under the model that is looked at.

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const percentPoints = (share) => `${(100 * share).toPrecision(3)} %`;

/** F1 of each run, and a line through the means of each model. */
function accuracyChart() {
  const models = [...new Set(data.models.map(({ model }) => model))];
  drawn(document.getElementById("accuracy-chart"), () => ({
    grid: { left: 58, right: 22, top: narrow() ? 76 : 54, bottom: 52 },
    legend: plainLegend(),
    tooltip: {
      ...tooltip(),
      formatter: ({ data: [epsilon, f1], seriesName }) => hint(element("p", "", seriesName), [["ε", String(epsilon)], ["F1", f1.toFixed(3)]]),
    },
    xAxis: { ...plainAxis(), type: "value", name: "ε that the job allows", nameLocation: "middle", nameGap: 30, min: 0 },
    yAxis: { ...plainAxis(), type: "value", name: "F1", nameTextStyle: { color: colour("soft"), align: "left" }, min: 0, max: 1 },
    series: models.flatMap((model, place) => {
      const key = COLOURS[place % COLOURS.length];
      const points = data.models.filter((each) => each.model === model).sort((a, b) => a.epsilon - b.epsilon);
      const means = points.map(({ epsilon, f1 }) => [epsilon, mean(f1)]);
      return [
        ...(means.length > 1
          ? [edges(model, means.slice(1).map((point, before) => [means[before], point]), key, { width: 2, opacity: 0.6 })]
          : []),
        {
          type: "scatter",
          name: model,
          data: points.flatMap(({ epsilon, f1 }) => f1.map((value) => [epsilon, value])),
          symbolSize: 10,
          itemStyle: { color: colour(key) },
        },
      ];
    }),
  }));
}

const MOST_DRAWN = 60;

/** Errors of the most frequent itemsets' supports; `chosen()` is the model that is looked at. */
function errorsChart(chosen) {
  const rows = Array.from({ length: Math.min(MOST_DRAWN, data.values.length) }, (_, row) => row);
  const { draw } = drawn(document.getElementById("errors-chart"), () => {
    const { estimates, name } = data.models[chosen()];
    const found = rows.filter((row) => estimates[row] !== null);
    const missed = rows.filter((row) => estimates[row] === null);
    const off = (row, place) => estimates[row][place] - data.supports[row];
    return {
      grid: { left: 70, right: 16, top: narrow() ? 84 : 58, bottom: 110 },
      legend: plainLegend(),
      tooltip: {
        ...tooltip(),
        formatter: ({ data: point }) => {
          const [row] = Array.isArray(point) ? point : point.value;
          const lines = [["support", formatPercent(data.supports[row])]];
          const estimate = estimates[row];
          return hint(element("p", "", valueName(row)), estimate === null
            ? [...lines, ["estimate", "not found"]]
            : [...lines, ["estimate", formatPercent(estimate[0])], ["interval", `${formatPercent(estimate[1])} to ${formatPercent(estimate[2])}`]]);
        },
      },
      xAxis: namesAxis(shortened(rows.map((row) => data.values[row]), 18)),
      yAxis: { ...countsAxis("estimate − support"), axisLabel: { color: colour("soft"), formatter: percentPoints } },
      series: [
        edges("interval", found.map((row) => [[row, off(row, 1)], [row, off(row, 2)]]), "accent", { width: 2, opacity: 0.6 }),
        { type: "scatter", name, data: found.map((row) => [row, off(row, 0)]), symbolSize: 8, itemStyle: { color: colour("accent") } },
        {
          type: "scatter",
          name: "not found",
          data: missed.map((row) => [row, 0]),
          symbolSize: 8,
          itemStyle: { color: "transparent", borderColor: colour("bad"), borderWidth: 1.5 },
        },
      ],
    };
  });
  return draw;
}

/** All itemsets of the page; the columns of estimates are of the model `chosen()`. */
function valuesTable(chosen) {
  const of = (place) => (row) => (data.models[chosen()].estimates[row] ?? [null, null, null])[place];
  const shownPercent = (value) => (value === null ? "—" : formatPercent(value));
  const columns = [
    listColumn("Itemset", valueName, 3),
    numberColumn("Support", (row) => data.supports[row], formatPercent, 1),
    numberColumn("Estimate", of(0), shownPercent, 0),
    numberColumn("From", of(1), shownPercent, 3),
    numberColumn("To", of(2), shownPercent, 3),
  ];
  const shown = table(document.getElementById("values-table"), data.values.length, columns, "Support");
  const names = data.values.map((name) => name.toLowerCase());
  shown.on("tableBuilt", () => {
    filtered(document.getElementById("values-filters"), shown, data.values.length, "itemsets", (fields) => {
      const wanted = fields.text.value.toLowerCase();
      return ({ row }) => names[row].includes(wanted);
    });
  });
  return shown;
}

if (data.models.length) {
  const choices = document.getElementById("models-choices");
  const chosen = () => Number(choices.elements.model.value);
  choices.hidden = data.models.length < 2;
  choices.addEventListener("submit", (event) => event.preventDefault());
  whenNear(document.getElementById("accuracy"), accuracyChart);
  whenNear(document.getElementById("errors"), () => {
    const redraw = errorsChart(chosen);
    const shown = valuesTable(chosen);
    choices.addEventListener("change", () => {
      redraw();
      shown.getRows().forEach((row) => row.reformat());
    });
  });
}
