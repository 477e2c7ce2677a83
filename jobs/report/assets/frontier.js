// The page of an exploration.

whenNear(document.getElementById("frontier"), frontierChart);
