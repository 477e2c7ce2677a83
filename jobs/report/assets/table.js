// Tables that sort and filter, for so many rows as the page holds: only those in view are drawn.

/** A column of what `content` makes of each row, sorted by the order of the result's files. */
function listColumn(title, content, grow) {
  return {
    title,
    field: title,
    formatter: (cell) => content(cell.getData().row),
    sorter: (a, b, x, y) => x.getData().row - y.getData().row,
    widthGrow: grow,
    minWidth: 110,
    variableHeight: true,
    responsive: 0,
  };
}

/** A column of numbers, the highest first when first sorted by. */
function numberColumn(title, valueOf, format, responsive) {
  const value = (row) => { const number = valueOf(row.getData().row); return number === null ? Infinity : number; };
  return {
    title,
    field: title,
    formatter: (cell) => element("span", "", format(valueOf(cell.getData().row))),
    sorter: (a, b, x, y) => {
      const [first, second] = [value(x), value(y)];
      return first === second ? 0 : first - second;
    },
    headerSortStartingDir: "desc",
    hozAlign: "right",
    headerHozAlign: "right",
    minWidth: 88,
    ...(narrow() ? {} : { width: Math.max(96, 46 + 9 * title.length) }),
    responsive,
  };
}

function table(holder, number, columns, by, dir = "desc") {
  const rows = Array.from({ length: number }, (_, row) => ({ row }));
  for (const column of columns) {
    // A button, so that the keyboard reaches it; its click rises to the head, which sorts.
    column.titleFormatter = (cell) => {
      const button = element("button", "sorts", cell.getValue());
      button.type = "button";
      return button;
    };
  }
  return new libraries.Tabulator(holder, {
    data: rows,
    columns,
    index: "row",
    layout: "fitColumns",
    responsiveLayout: narrow() ? "hide" : false,
    maxHeight: "34rem",
    initialSort: [{ column: by, dir }],
    placeholder: "No row is left by these filters.",
  });
}

/** Filters the table by what `predicate` makes of the form, and says how many rows are left. */
function filtered(form, shown, total, things, predicate) {
  const output = form.querySelector("output");
  const say = (left) => {
    output.textContent = `${left === total ? "" : `${formatCount(left)} of `}${formatCount(total)} ${things}`;
  };
  let waiting = 0;
  const apply = () => { shown.setFilter(predicate(form.elements)); };
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(apply, 120); };
  shown.on("dataFiltered", (filters, rows) => say(rows.length));
  form.addEventListener("input", soon);
  form.addEventListener("reset", soon);
  form.addEventListener("submit", (event) => event.preventDefault());
  say(total);
  return soon;
}

const formatKnown = (value) => (value === null ? "—" : formatMeasure(value));

const least = (field, unit = 1) => (field.value === "" ? -Infinity : Number(field.value) / unit);

function itemsetsTable() {
  const holder = document.getElementById("itemsets-table");
  const { sets, count } = itemsets;
  const columns = [
    listColumn("Itemset", (row) => chips(sets.at(row)), 4),
    numberColumn("Length", (row) => sets.length(row), formatCount, 3),
    ...(counted
      ? [
        numberColumn("Count", (row) => count[row], formatCount, 1),
        numberColumn("Support", (row) => supportOf(count[row]), formatPercent, 0),
      ]
      : []),
    ...(estimated
      ? [
        numberColumn("From", (row) => itemsets.low[row], formatPercent, 2),
        numberColumn("To", (row) => itemsets.high[row], formatPercent, 2),
      ]
      : []),
  ];
  const shown = table(holder, sets.number, columns, counted ? "Count" : "Length");
  shown.on("tableBuilt", () => {
    filtered(document.getElementById("itemsets-filters"), shown, sets.number, "itemsets", (fields) => {
      const wanted = itemsNamed(fields.text.value);
      const length = fields.long.value;
      const support = counted ? least(fields.support, 100) : 0;
      return ({ row }) =>
        (!counted || supportOf(count[row]) >= support)
        && (length === "" || (length.endsWith("+") ? sets.length(row) >= parseInt(length, 10) : sets.length(row) === Number(length)))
        && wanted.every((items) => sets.some(row, items));
    });
  });
}

/** The table of rules; `inside` says whether a rule is in the rectangle drawn in the chart. */
function rulesTable(inside) {
  const form = document.getElementById("rules-filters");
  const { antecedent, consequent, count, measures } = rules;
  const title = (name) => name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");
  const names = Object.keys(measures);
  const columns = [
    ...(narrow()
      ? [listColumn("Rule", (row) => element("span", "", chips(antecedent.at(row)), "⇒ ", chips(consequent.at(row))), 3)]
      : [
        listColumn("If", (row) => chips(antecedent.at(row)), 3),
        listColumn("Then", (row) => chips(consequent.at(row)), 2),
      ]),
    ...(counted
      ? [
        numberColumn("Count", (row) => count[row], formatCount, 5),
        numberColumn("Support", (row) => supportOf(count[row]), formatPercent, 4),
      ]
      : []),
    ...names.map((name) => numberColumn(
      title(name), (row) => measures[name][row], estimated ? formatKnown : formatMeasure, name === "lift" || names.length === 1 ? 1 : 3)),
  ];
  const total = antecedent.number;
  const by = names.includes("lift") ? "Lift" : "Count";
  const order = counted ? [by] : [columns[0].field, "asc"];  // the order of the result's files
  const shown = table(document.getElementById("rules-table"), total, columns, ...order);
  return new Promise((built) => {
    shown.on("tableBuilt", () => {
      built(filtered(form, shown, total, "rules", (fields) => {
        const wanted = itemsNamed(fields.text.value);
        const side = fields.side.value;
        const support = counted ? least(fields.support, 100) : 0;
        const limits = names
          .map((name) => [measures[name], least(fields[`measure-${name}`])])
          .filter(([, limit]) => limit > -Infinity);
        const has = (row, items) =>
          (side !== "consequent" && antecedent.some(row, items)) || (side !== "antecedent" && consequent.some(row, items));
        return ({ row }) =>
          inside(row)
          && (!counted || supportOf(count[row]) >= support)
          && limits.every(([values, limit]) => values[row] === null || values[row] >= limit)
          && wanted.every((items) => has(row, items));
      }));
    });
  });
}
