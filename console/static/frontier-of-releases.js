"use strict";
// Releases of one dataset by their risk and their loss.

frontierChart();
