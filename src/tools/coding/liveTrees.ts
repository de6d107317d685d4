/**
 * The process trees that live, ended with this process. Rule: one listener for the end of the process, there only while
 * a tree lives; signals are left to the program that uses the library.
 */
import type { ProcessTree } from './processTree.ts';

const live = new Set<ProcessTree>();

const endAll = (): void => {
  for (const tree of live) tree.kill();
};

/** Answers what takes the tree off the list, once nothing of it lives. */
export function keep(tree: ProcessTree): () => void {
  if (live.size === 0) process.on('exit', endAll);
  live.add(tree);
  return () => {
    if (live.delete(tree) && live.size === 0) process.off('exit', endAll);
  };
}
