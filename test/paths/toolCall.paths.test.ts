import { chartCases, toolCallMachine } from '../../machines/index.ts';
import { pathSuite } from './pathSuite.ts';

pathSuite(toolCallMachine, chartCases.toolCall);
