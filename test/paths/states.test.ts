import { charts } from './charts.ts';
import { stateSuite } from './stateSuite.ts';

// RUN takes as long as all others: it has a file of its own, so that two cores share them.
for (const chart of charts) if (chart.machine.id !== 'RUN') stateSuite(chart);
