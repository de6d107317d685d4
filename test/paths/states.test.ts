import { volume } from '../support/tier.ts';
import { charts } from './charts.ts';
import { stateSuite } from './stateSuite.ts';

// RUN takes as long as all other charts together, so it has a separate file for a second core.
for (const chart of charts) {
  const { id } = chart.machine;
  if (id !== 'RUN') stateSuite(chart, id === 'CONVERSATION' ? volume.stateStartOf : 1);
}
