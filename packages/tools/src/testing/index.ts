// The contract every tool must keep.
export { createToolContract, type ToolContractOptions, type ToolContractCase } from './tool-contract.ts';

// What a test left behind.
export { listResources, type ResourceList, waitForNoNewResources } from './resources.ts';
