import { charts } from './charts.ts';
import { stateSuite } from './stateSuite.ts';

for (const chart of charts) stateSuite(chart);
