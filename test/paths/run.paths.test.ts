import { chartCases, runMachine } from '../../machines/index.ts';
import { ofRun } from './invariants.ts';
import { pathSuite } from './pathSuite.ts';

pathSuite(runMachine, chartCases.run, ofRun);
