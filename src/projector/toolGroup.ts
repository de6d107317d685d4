/**
 * Which group a tool belongs to (request-cycle-model, Tool grouping rules). Rule: the host's word before the tool's own
 * before the table; names match without regard to case; a word that is no group does not count.
 */
import type { GroupName } from '../../machines/vocabulary.ts';
import { isGroupName } from './readWire.ts';

const TABLE: ReadonlyMap<string, GroupName> = new Map<string, GroupName>([
  ['ls', 'read-group'],
  ['read', 'read-group'],
  ['grep', 'read-group'],
  ['find', 'read-group'],
  ['write', 'write-group'],
  ['edit', 'write-group'],
  ['bash', 'bash-group'],
]);

export type GroupOf = (toolName: string) => GroupName | undefined;

export function groupName(name: string, own: GroupName | undefined, groupOf: GroupOf | undefined): GroupName {
  return said(groupOf, name) ?? own ?? TABLE.get(name.toLowerCase()) ?? 'other-group';
}

function said(groupOf: GroupOf | undefined, name: string): GroupName | undefined {
  if (groupOf === undefined) return undefined;
  try {
    const group: unknown = groupOf(name);
    return isGroupName(group) ? group : undefined;
  } catch {
    // A host's mistake must not cost the view.
    return undefined;
  }
}
