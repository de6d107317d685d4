import { chartCases, conversationMachine } from '../../machines/index.ts';
import { ofConversation } from './conversationInvariants.ts';
import { pathSuite } from './pathSuite.ts';

pathSuite(conversationMachine, chartCases.conversation, ofConversation);
