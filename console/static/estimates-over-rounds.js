"use strict";
// Estimates of one round, and the course of the leading values over the rounds before it.

if (data.values.length) leadersChart();
if (data.courses.length) roundsChart();
