/**
 * `runchart` alone on a terminal: not there yet.
 */
import { ConfigurationError } from '../../errors.ts';
import type { AgentOptions } from '../codingAgent.ts';
import type { SessionChoice } from '../sessions/sessionStore.ts';

export interface InteractiveOptions extends AgentOptions, Omit<SessionChoice, 'session' | 'new'> {}

export async function interactiveCommand(_options: InteractiveOptions, _signal: AbortSignal): Promise<number> {
  throw new ConfigurationError('a conversation on the terminal is not there yet: give one request with -p');
}
