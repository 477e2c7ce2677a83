// The page of a collection: its charts, and all values in a table.

function valuesTable() {
  const of = (key) => (row) => data[key][row];
  const number = (title, key, responsive) => numberColumn(title, of(key), shownFigure, responsive);
  const columns = [
    listColumn("Value", valueName, 3),
    number("Estimate", "estimates", 0),
    number("Low", "low", 3),
    number("High", "high", 3),
    ...(data.processed ? [number(data.processing, "processed", 2)] : []),
  ];
  const shown = table(document.getElementById("values-table"), data.values.length, columns, "Estimate");
  const names = data.values.map((name) => name.toLowerCase());
  shown.on("tableBuilt", () => {
    filtered(document.getElementById("values-filters"), shown, data.values.length, "values", (fields) => {
      const wanted = fields.text.value.toLowerCase();
      return ({ row }) => names[row].includes(wanted);
    });
  });
}

whenNear(document.getElementById("estimates"), () => {
  if (data.values.length) leadersChart();
  valuesTable();
});
if (data.courses.length) whenNear(document.getElementById("rounds"), roundsChart);
