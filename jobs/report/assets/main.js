// Puts the page to work: tables and charts wait until they come in view.

if (estimated && itemsets.sets.number) whenNear(document.getElementById("intervals"), intervalsChart);
if (itemsets.sets.number) whenNear(document.getElementById("itemsets-table"), itemsetsTable);

if (rules && rules.antecedent.number && !counted) {
  whenNear(document.getElementById("rules-table"), () => rulesTable(() => true));
}

if (rules && rules.antecedent.number && counted) {
  whenNear(document.getElementById("scatter"), async () => {
    let refilter = () => {};
    const plot = scatter(document.getElementById("scatter"), () => refilter());
    refilter = await rulesTable(plot.inside);
    document.getElementById("rules-filters").addEventListener("reset", plot.clear);
  });
}

whenNear(document.getElementById("together"), pairsChart);

for (const copy of document.querySelectorAll(".copy")) {
  const button = copy.querySelector("button");
  button.addEventListener("click", async () => {
    const text = copy.querySelector("code");
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
