// What the report uses of the libraries, and nothing else: the bundler leaves the rest out.
import { GraphChart, HeatmapChart, ScatterChart } from "echarts/charts";
import {
  BrushComponent,
  GridComponent,
  LegendComponent,
  TooltipComponent,
  VisualMapContinuousComponent,
} from "echarts/components";
import { init, use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import {
  FilterModule,
  FormatModule,
  InteractionModule,
  ResizeTableModule,
  ResponsiveLayoutModule,
  SortModule,
  Tabulator,
} from "tabulator-tables";

use([
  BrushComponent,
  CanvasRenderer,
  GraphChart,
  GridComponent,
  HeatmapChart,
  LegendComponent,
  ScatterChart,
  TooltipComponent,
  VisualMapContinuousComponent,
]);
Tabulator.registerModule([
  FilterModule,
  FormatModule,
  InteractionModule,
  ResizeTableModule,
  ResponsiveLayoutModule,
  SortModule,
]);

export { init, Tabulator };
