// Puts the page to work: what needs scripts is shown, what stands in for it goes; charts wait until they come in view.

document.documentElement.classList.add("scripted");
for (const part of document.querySelectorAll(".live")) part.hidden = false;

/** Runs `task` once, as soon as the element is nearly in view; at the latest when the page is idle. */
function whenNear(place, task) {
  let waiting = true;
  const once = () => { if (waiting) { waiting = false; watcher.disconnect(); task(); } };
  const watcher = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) once(); }, { rootMargin: "400px" });
  watcher.observe(place);
  window.addEventListener("beforeprint", once);
  if ("requestIdleCallback" in window) requestIdleCallback(once); else setTimeout(once, 500);
}

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
