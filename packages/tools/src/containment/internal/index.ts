// For Whoa's own packages. Anything here may change in any release.

// A program that loads nothing else starts sooner.
export { createContainment } from '../../process/containment/create-containment.ts';
