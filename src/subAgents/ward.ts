/**
 * The conversation of a sub-agent, opened under its rules. Rule: the agent's plugins stand between them: what ends a
 * turn and what its last one may use has the last word.
 */
import type { Opened } from '../conversation/open.ts';
import type { SpawnCast } from './cast.ts';
import { submissionIn } from './ending.ts';
import type { Birth, Nest } from './nested.ts';
import { aloneRule, turnRules } from './submit.ts';

export interface WardOptions {
  id: string;
  parent: { conversationId: string; callId: string };
  nest: Nest;
  spawn: SpawnCast;
  /** Nothing is left of what the parent may spend. */
  broke(): boolean;
  birth: Birth;
}

export async function openWard({ id, parent, nest, spawn, broke, birth }: WardOptions): Promise<Opened> {
  const { cast, turns } = spawn;
  let opened: Opened | undefined;
  const submitted = (): boolean => opened !== undefined && submissionIn(opened.runtime.known) !== undefined;
  const plugins = [aloneRule, ...cast.plugins, ...turnRules({ turns, submitted, broke })];
  opened = await birth({ id, parent, closed: () => {} }, { ...cast, plugins, nest });
  return opened;
}
