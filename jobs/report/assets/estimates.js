// What charts of estimates share: axes, legends, intervals and lines.

const COLOURS = ["accent", "lift-4", "lift-0", "lift-2", "lift-5", "lift-3", "good", "lift-1", "bad", "edge", "soft", "text"];
const decimals = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const valueName = (row) => element("bdi", "item", data.values[row]);

const plainAxis = () => ({
  axisLine: { lineStyle: { color: colour("line") } },
  axisLabel: { color: colour("soft") },
  splitLine: { lineStyle: { color: colour("line") } },
  nameTextStyle: { color: colour("soft") },
});

const countsAxis = (name) => ({ ...plainAxis(), type: "value", name, nameTextStyle: { color: colour("soft"), align: "left" } });

const namesAxis = (names) => ({
  ...plainAxis(),
  type: "category",
  data: names,
  axisLabel: { color: colour("soft"), rotate: 50, interval: names.length > 40 ? "auto" : 0 },
});

const plainLegend = () => ({ top: 0, left: 0, itemWidth: 12, itemHeight: 12, textStyle: { color: colour("text") }, inactiveColor: colour("line") });

/** Lines between pairs of points, which are intervals or curves: edges between nodes that are not seen. */
function edges(name, pairs, key, lineStyle) {
  return {
    type: "graph",
    ...(name ? { name } : {}),
    coordinateSystem: "cartesian2d",
    data: pairs.flatMap(([from, to], place) => [{ name: `${place} from`, value: from }, { name: `${place} to`, value: to }]),
    links: pairs.map((pair, place) => ({ source: 2 * place, target: 2 * place + 1 })),
    symbolSize: 0.1,
    silent: true,
    itemStyle: { color: colour(key) },
    lineStyle: { color: colour(key), ...lineStyle },
  };
}
