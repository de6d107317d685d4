/** The groups of tools, and the group of a tool that declares none. Invariant: a name counts without regard to case. */
import type { GroupName } from '../vocabulary.ts';

/** The tools of each group; the compiler refuses a missing group. */
const TOOLS: { readonly [Group in GroupName]: readonly string[] } = {
  'read-group': ['ls', 'read', 'grep', 'find'],
  'write-group': ['write', 'edit'],
  'bash-group': ['bash'],
  /** Every other tool. */
  'other-group': [],
};

export const groupNames = Object.keys(TOOLS) as [GroupName, ...GroupName[]];

const NAMES: ReadonlySet<unknown> = new Set(groupNames);
export const isGroupName = (value: unknown): value is GroupName => NAMES.has(value);

const GROUPS: ReadonlyMap<string, GroupName> = new Map(
  groupNames.flatMap((group) => TOOLS[group].map((name) => [name, group] as const)),
);
/** The group of a tool that declares none. */
export const groupOfName = (name: string): GroupName => GROUPS.get(name.toLowerCase()) ?? 'other-group';
