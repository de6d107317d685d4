/**
 * `/permissions`: shows the rules with their layers and the rule that decided the last call, and changes the rules of the
 * session and those that are kept for the directory. Invariant: rules of files are changed in the files only.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import { textOf } from '../../content/content.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { printableLine } from '../../printable.ts';
import { approvalFacts } from '../interactive/approval.ts';
import { ownLine, type TextLine } from '../interactive/textRows.ts';
import type { CommandPort } from './commandPort.ts';

const KINDS = ['deny', 'ask', 'allow'] as const;

export function permissionLines(conversation: Conversation, { made, remembered }: CommandPort): TextLine[] {
  const lines = [ownLine(['bold', 'mode  '], ['plain', made.permissions.modeOf(conversation.id)])];
  for (const { name, trusted, ...rules } of made.layers) {
    for (const what of KINDS) {
      const isIgnored = what === 'allow' && trusted !== true;
      for (const rule of rules[what] ?? [])
        lines.push(ruleLine(what, rule, `${printableLine(name)}${isIgnored ? ', not trusted' : ''}`));
    }
  }
  for (const rule of remembered) lines.push(ruleLine('allow', rule, 'until the program ends'));
  const last = lastDecision(conversation.log());
  if (last) lines.push(ownLine(['dim', printableLine(last)]));
  lines.push(
    ownLine([
      'dim',
      `/permissions allow, ask, deny or keep <rule> adds one, /permissions remove <rule> takes one back`,
    ]),
  );
  return lines;
}

const ruleLine = (what: string, rule: string, origin: string): TextLine =>
  ownLine(['bold', `${what}  `], ['plain', printableLine(rule)], ['dim', `  ${origin}`]);

/** The decision of the rules about the last call that they judged. */
function lastDecision(entries: readonly LogEntry[]): string | undefined {
  const names = new Map<string, string>();
  let last: string | undefined;
  for (const entry of entries) {
    if (entry.type === 'agent-output' && entry.item.type === 'tool-call') names.set(entry.item.callId, entry.item.name);
    if (entry.type === 'tool-allowed') last = `the last call, ${names.get(entry.callId)}, was allowed by: ${entry.by}`;
    if (entry.type === 'tool-suspended' && entry.payload !== undefined) {
      const { by } = approvalFacts(entry.payload);
      if (by !== '') last = `the last call, ${names.get(entry.callId)}, was asked about because of: ${by}`;
    }
    if (entry.type === 'tool-result' && entry.code === 'denied')
      last = `the last call, ${names.get(entry.callId)}, was denied: ${textOf(entry.content)}`;
  }
  return last;
}

/**
 * `allow RULE`, `ask RULE` and `deny RULE` add a rule until the program ends. `keep RULE` adds an allow rule for the
 * directory. `remove RULE` removes a rule.
 */
export async function changePermissions(argument: string, port: CommandPort): Promise<void> {
  const { made, say } = port;
  if (port.isBusy()) return;
  const [, what = '', rule = ''] = /^(\w+)\s+(\S[\s\S]*)$/.exec(argument) ?? [];
  switch (what) {
    case 'allow':
    case 'ask':
    case 'deny':
      if (!(await port.remake({ [what]: [rule] }))) return;
      return say('plain', `${what} ${printableLine(rule)}: until the program ends`);
    case 'keep':
      say('plain', `kept for this directory in ${printableLine(await made.keep([rule]))}`);
      await port.remake({ allow: [rule] });
      return;
    case 'remove': {
      const isKept = await made.unkeep(rule);
      const isOfSession = port.forget(rule) || made.layers[0]?.allow?.includes(rule) === true;
      if (!isKept && !isOfSession && !KINDS.some((kind) => made.layers[0]?.[kind]?.includes(rule)))
        return say('yellow', `no rule ${printableLine(rule)} was added here: rules of files are changed in the files`);
      if (!(await port.remake({ removed: [rule] }))) return;
      return say('plain', `removed: ${printableLine(rule)}`);
    }
    default:
      return say('yellow', 'expected allow, ask, deny, keep or remove and a rule: /permissions allow bash(npm test *)');
  }
}
