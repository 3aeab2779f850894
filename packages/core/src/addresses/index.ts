// For code on Node that connects to addresses others chose: this entry needs `node:net`, so pages cannot import it.

export { isPublicAddress } from './public-address.ts';
