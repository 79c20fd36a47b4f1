//! How full the levels are: targets, scores and the debt of compaction.
