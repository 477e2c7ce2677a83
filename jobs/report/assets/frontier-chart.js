// Runs or releases by their risk and their loss, and the line of those that no other beats.

function frontierChart() {
  const places = data.points.map((_, place) => place);
  const at = (place) => [data.points[place].risk, data.points[place].loss];
  const best = places.filter((place) => data.points[place].pareto).sort((a, b) => data.points[a].risk - data.points[b].risk);
  const dots = (name, chosen, key) => ({
    type: "scatter",
    name,
    data: chosen.map((place) => [...at(place), place]),
    symbolSize: 11,
    itemStyle: { color: colour(key) },
  });
  drawn(document.getElementById("frontier-chart"), () => ({
    grid: { left: 58, right: 22, top: narrow() ? 76 : 54, bottom: 52 },
    legend: plainLegend(),
    tooltip: {
      ...tooltip(),
      formatter: ({ data: [, , place] }) => {
        const point = data.points[place];
        return hint(element("p", "", point.name), [
          ["highest risk", formatPercent(point.risk)],
          ["loss", formatMeasure(point.loss)],
          ["classes", formatCount(point.classes)],
          ["suppressed", formatCount(point.suppressed)],
        ]);
      },
    },
    xAxis: { ...plainAxis(), type: "value", name: "highest prosecutor risk", nameLocation: "middle", nameGap: 30, min: 0 },
    yAxis: { ...plainAxis(), type: "value", name: "loss (GCP)", nameTextStyle: { color: colour("soft"), align: "left" }, min: 0 },
    series: [
      edges("frontier", best.slice(1).map((place, before) => [at(best[before]), at(place)]), "accent", { width: 2, opacity: 0.6 }),
      dots("on the frontier", best, "accent"),
      dots("beaten", places.filter((place) => !data.points[place].pareto), "edge"),
    ].filter((series) => series.data.length),
  }));
}
