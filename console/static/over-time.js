"use strict";
// Lines over time, each level from one moment to the next: `data.lines` has for each its name, its colour, its unit, points
// of a time in Unix seconds and a number, and the limit where there is one.

const moments = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });
const steps = (points) => points.slice(1).flatMap((next, before) => {
  const from = points[before], corner = [next[0], from[1]];
  return from[1] === next[1] ? [[from, corner]] : [[from, corner], [corner, next]];
});

for (const [place, line] of data.lines.entries()) {
  const points = line.points.map(([at, value]) => [1000 * at, value]);
  const ends = line.limit === null ? [] : [points[0], points[points.length - 1]].map(([at]) => [at, line.limit]);
  drawn(document.getElementById(`line-${place}`), () => ({
    grid: { left: 70, right: 22, top: 58, bottom: 40 },
    legend: plainLegend(),
    tooltip: {
      ...tooltip(),
      formatter: ({ data: [at, value] }) => hint(element("p", "", `${moments.format(at)} UTC`), [[line.name, String(value)]]),
    },
    xAxis: { ...plainAxis(), type: "time", min: points[0][0], max: points[points.length - 1][0], splitNumber: narrow() ? 3 : 8, axisLabel: { color: colour("soft"), hideOverlap: true } },
    yAxis: { ...countsAxis(line.name), min: 0 },
    series: [
      edges("over time", steps(points), "accent", { width: 2 }),
      ...(ends.length ? [edges("limit", [ends], "bad", { width: 1.5, type: "dashed" })] : []),
      { type: "scatter", name: "at a start", data: points, symbolSize: 6, itemStyle: { color: colour("accent") } },
    ],
  }));
}
