import { chartCases, toolRoundMachine } from '../../machines/index.ts';
import { pathSuite } from './pathSuite.ts';
import { ofRound } from './sentInvariants.ts';

pathSuite(toolRoundMachine, chartCases.toolRound, () => ofRound);
