import { chartCases, modelCallMachine } from '../../machines/index.ts';
import { pathSuite } from './pathSuite.ts';

pathSuite(modelCallMachine, chartCases.modelCall);
