/** An image as models, tools and hosts hand it over: one pixel, so that nothing has to scale it. */
export const IMAGE = {
  type: 'image' as const,
  mediaType: 'image/png',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
};
