import { chartCases, compactionMachine } from '../../machines/index.ts';
import { pathSuite } from './pathSuite.ts';

pathSuite(compactionMachine, chartCases.compaction);
