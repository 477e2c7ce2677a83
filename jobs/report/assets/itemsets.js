// The tables of the result, as jobs/report/tables.py packs them, in arrays that are quick to filter and sort.

/** Lists of items: `lengths` and one after the other the positions of their items. */
class Lists {
  constructor({ lengths, items }) {
    this.items = Int32Array.from(items);
    this.starts = new Int32Array(lengths.length + 1);
    lengths.forEach((length, row) => { this.starts[row + 1] = this.starts[row] + length; });
  }

  get number() { return this.starts.length - 1; }

  length(row) { return this.starts[row + 1] - this.starts[row]; }

  at(row) { return this.items.subarray(this.starts[row], this.starts[row + 1]); }

  /** Whether the list has an item for which `wanted`, a Uint8Array over all items, holds. */
  some(row, wanted) {
    for (let place = this.starts[row]; place < this.starts[row + 1]; place++) {
      if (wanted[this.items[place]]) return true;
    }
    return false;
  }
}

const counted = data.counted;  // whether supports are disclosed; where not, all counts are null

const estimated = data.estimated;  // whether counts are estimates, with intervals

const itemsets = {
  sets: new Lists(data.itemsets),
  count: data.itemsets.count,
  support: data.itemsets.support,
  low: data.itemsets.low,
  high: data.itemsets.high,
};

/** A ratio of counts; null where noise leaves nothing to divide by, or a count was not estimated. */
const ratioOf = (part, whole) => (part !== null && whole ? part / whole : null);

const rules = data.rules && {
  antecedent: new Lists(data.rules.antecedent),
  consequent: new Lists(data.rules.consequent),
  count: data.rules.count,
  measures: data.rules.measures,
  confidence: counted && data.rules.count.map((count, rule) => ratioOf(count, data.rules.antecedentCount[rule])),
  lift: counted && data.rules.count.map(
    (count, rule) => ratioOf(ratioOf(count, data.rules.antecedentCount[rule]), ratioOf(data.rules.consequentCount[rule], data.rows))),
};

const supportOf = (count) => count / Math.max(data.rows, 1);

/** For each of the words, separated by commas, which items have it in their name. */
function itemsNamed(text) {
  const words = text.toLowerCase().split(",").map((word) => word.trim()).filter(Boolean);
  if (!words.length) return [];
  const names = data.items.map((name) => name.toLowerCase());
  return words.map((word) => Uint8Array.from(names, (name) => name.includes(word)));
}

const itemNames = (places) => Array.from(places, (item) => data.items[item]);

function chips(places) {
  return element("span", "", ...itemNames(places).map((name) => element("bdi", "item", name)));
}
