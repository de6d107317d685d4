/** What is to be known about a command that reads: which of its words name files, and what else it shows. */
import type { ShellWord } from '../wordExpansion.ts';

export interface Reading {
  /** Words that may name files. */
  paths: readonly ShellWord[];
  /** Short options: the value of one may be glued to it, and name a file. */
  options?: readonly ShellWord[];
  /** It reads the files below the directories among them, and which. */
  descends: false | 'all' | 'visible';
  /** The directories that it reads below, where they are known for certain; else it may read below any. */
  roots?: readonly ShellWord[];
  namesOnly: boolean;
  filesOnly: boolean;
  /** The repository of the working directory says what else it does. */
  usesGit: boolean;
  /** It reads no more than these where they are files. `areAll`: else those of them that are there count. */
  unless?: { words: readonly ShellWord[]; areAll: boolean };
}

export const READS_NOTHING: Reading = {
  paths: [],
  descends: false,
  namesOnly: true,
  filesOnly: false,
  usesGit: false,
};
