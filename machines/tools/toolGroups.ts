/** The groups of tools. Invariant: the names are in small letters, and a tool of no list is in `other-group`. */
import type { GroupName } from '../vocabulary.ts';

/** The tools of each group; the compiler refuses a missing group. */
export const toolGroups: { readonly [Group in GroupName]: readonly string[] } = {
  'read-group': ['ls', 'read', 'grep', 'find'],
  'write-group': ['write', 'edit'],
  'bash-group': ['bash'],
  /** Every other tool. */
  'other-group': [],
};

export const groupNames = Object.keys(toolGroups) as [GroupName, ...GroupName[]];
