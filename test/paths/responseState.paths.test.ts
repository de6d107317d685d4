import { chartCases, responseStateMachine } from '../../machines/index.ts';
import { pathSuite } from './pathSuite.ts';

// This chart waits for its request and asks for nothing, so the rule about wake-ups does not apply.
pathSuite(responseStateMachine, chartCases.responseState, () => []);
