/** The facts about a command that only reads: which of its words name files, and what else it shows. */
import type { ShellWord } from '../wordExpansion.ts';

export interface Reading {
  /** Words that may name files. */
  paths: readonly ShellWord[];
  /** Short options whose value may be attached and name a file. */
  options?: readonly ShellWord[];
  /** The files below its directory arguments that the command reads: none, all, or all but hidden ones. */
  descends: false | 'all' | 'visible';
  /** Patterns of hidden names that it reads too. If present, ignore files may include more of them. */
  included?: readonly string[];
  /** The directories below which it reads. If absent, it may read below any of its words. */
  roots?: readonly ShellWord[];
  namesOnly: boolean;
  filesOnly: boolean;
  /** The repository of the working directory decides the other acts of the command. */
  usesGit: boolean;
  /**
   * If these words are files, the command reads only them. With `areAll`, every word must be a file. Otherwise only
   * existing ones count.
   */
  unless?: { words: readonly ShellWord[]; areAll: boolean };
}

export const READS_NOTHING: Reading = {
  paths: [],
  descends: false,
  namesOnly: true,
  filesOnly: false,
  usesGit: false,
};
