// Estimated supports of the leading itemsets, with their intervals.

const LEADING = 20;

function intervalsChart() {
  const { sets, count, support, low, high } = itemsets;
  const rows = Array.from(count.keys()).sort((x, y) => support[y] - support[x]).slice(0, LEADING);
  const percent = (share) => 100 * share;
  drawn(document.getElementById("intervals"), () => ({
    grid: { left: 60, right: 16, top: narrow() ? 84 : 58, bottom: 110 },
    legend: plainLegend(),
    tooltip: {
      ...tooltip(),
      formatter: ({ data: [place] }) => hint(element("p", "", chips(sets.at(rows[place]))), [
        ["support", formatPercent(support[rows[place]])],
        ["95 % interval", `${formatPercent(low[rows[place]])} to ${formatPercent(high[rows[place]])}`],
      ]),
    },
    xAxis: namesAxis(shortened(rows.map((row) => itemNames(sets.at(row)).join(", ")), 18)),
    yAxis: countsAxis("support, %"),
    series: [
      edges("95 % interval", rows.map((row, place) => [[place, percent(low[row])], [place, percent(high[row])]]), "accent", { width: 2, opacity: 0.6 }),
      {
        type: "scatter",
        name: "estimate",
        data: rows.map((row, place) => [place, percent(support[row])]),
        symbolSize: 8,
        itemStyle: { color: colour("accent") },
      },
    ],
  }));
}
