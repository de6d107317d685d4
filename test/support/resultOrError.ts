/** Returns what the function returns or throws. */
export function resultOrError(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}
