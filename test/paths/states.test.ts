import { volume } from '../support/tier.ts';
import { charts } from './charts.ts';
import { stateSuite } from './stateSuite.ts';

// RUN takes as long as all others: it has a file of its own, so that two cores share them.
for (const chart of charts) {
  const { id } = chart.machine;
  if (id !== 'RUN') stateSuite(chart, id === 'CONVERSATION' ? volume.stateStartOf : 1);
}
