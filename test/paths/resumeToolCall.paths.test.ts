import { chartCases, resumeToolCallMachine } from '../../machines/index.ts';
import { pathSuite } from './pathSuite.ts';
import { ofGate } from './sentInvariants.ts';

pathSuite(resumeToolCallMachine, chartCases.resumeToolCall, () => ofGate);
