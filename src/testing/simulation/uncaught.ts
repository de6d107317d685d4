/**
 * Rejections that nobody handled, while lives are lived. Rule: the process has one listener, however many lives are under
 * way at once; whose it was cannot be told, so each of them is told.
 */
type Told = (error: unknown) => void;

const lives = new Set<Told>();
const tell = (error: unknown): void => {
  for (const told of lives) told(error);
};

/** Until the function it returns is called. */
export function watchUncaught(told: Told): () => void {
  if (lives.size === 0) process.on('unhandledRejection', tell);
  lives.add(told);
  return () => {
    lives.delete(told);
    if (lives.size === 0) process.off('unhandledRejection', tell);
  };
}
