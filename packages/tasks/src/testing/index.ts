export type { CaseContext, ContractCase } from './case.ts';
export {
  type ContractReport,
  formatContractReports,
  runContractCase,
  runStoreContract,
  type StoreHarness,
  type StoreKind,
  skipReason,
  storeContract,
} from './contract.ts';
export { createRedisStoreKind, memoryStoreKind, sqliteStoreKind } from './kinds.ts';
export { checkStoreModel, type ModelOptions } from './model.ts';
