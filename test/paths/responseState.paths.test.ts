import { chartCases, responseStateMachine } from '../../machines/index.ts';
import { pathSuite } from './pathSuite.ts';

// It waits for what its request does and asks for nothing: what wakes charts that act is not said of it.
pathSuite(responseStateMachine, chartCases.responseState, () => []);
