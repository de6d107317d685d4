import { volume } from '../support/tier.ts';
import { charts } from './charts.ts';
import { stateSuite } from './stateSuite.ts';

for (const chart of charts) if (chart.machine.id === 'RUN') stateSuite(chart, volume.stateStartOf);
