package microbench

import (
	"fmt"
	"strconv"
	"strings"

	"nicprof/internal/fault"
)

// Shard is part K of N of a plan, K from 1. The zero Shard is the whole plan.
type Shard struct {
	K int `json:"k"`
	N int `json:"n"`
}

// String returns K/N, or "whole".
func (s Shard) String() string {
	if s.N == 0 {
		return "whole"
	}
	return fmt.Sprintf("%d/%d", s.K, s.N)
}

// Of returns the workloads of the shard: every Nth, so that the parts of a
// plan take about the same time.
func (s Shard) Of(plan []Workload) []Workload {
	if s.N == 0 {
		return plan
	}
	var part []Workload
	for i := s.K - 1; i < len(plan); i += s.N {
		part = append(part, plan[i])
	}
	return part
}

// ParseShard reads K/N, the empty string (the whole plan) or "auto", which
// takes K and N from the environment of a Slurm job array
// (SLURM_ARRAY_TASK_ID, _MIN, _STEP and _COUNT) or of an indexed Kubernetes job
// (JOB_COMPLETION_INDEX, from 0, which the cluster sets, and JOB_COMPLETIONS,
// which the job's own specification has to set). getenv is os.Getenv.
func ParseShard(s string, getenv func(string) string) (Shard, error) {
	switch s {
	case "":
		return Shard{}, nil
	case "auto":
		return shardFromEnv(getenv)
	}
	k, n, ok := strings.Cut(s, "/")
	sh := Shard{}
	var err1, err2 error
	sh.K, err1 = strconv.Atoi(k)
	sh.N, err2 = strconv.Atoi(n)
	if !ok || err1 != nil || err2 != nil || sh.N < 1 || sh.K < 1 || sh.K > sh.N {
		return Shard{}, fault.Inputf("shard %q: expected K/N with 1 <= K <= N, such as 2/8, or auto", s)
	}
	return sh, nil
}

func shardFromEnv(getenv func(string) string) (Shard, error) {
	var bad error
	num := func(name string, otherwise int) int {
		v := getenv(name)
		if v == "" {
			return otherwise
		}
		n, err := strconv.Atoi(v)
		if err != nil && bad == nil {
			bad = fault.Inputf("shard auto: %s is %q, expected a number", name, v)
		}
		return n
	}
	var s Shard
	switch {
	case getenv("SLURM_ARRAY_TASK_ID") != "":
		step := max(1, num("SLURM_ARRAY_TASK_STEP", 1))
		s.K = (num("SLURM_ARRAY_TASK_ID", 0)-num("SLURM_ARRAY_TASK_MIN", 1))/step + 1
		s.N = num("SLURM_ARRAY_TASK_COUNT", 0)
		if s.N == 0 && bad == nil {
			bad = fault.Inputf("shard auto: SLURM_ARRAY_TASK_ID is set but SLURM_ARRAY_TASK_COUNT is not; give --shard K/N")
		}
	case getenv("JOB_COMPLETION_INDEX") != "":
		s.K = num("JOB_COMPLETION_INDEX", 0) + 1
		s.N = num("JOB_COMPLETIONS", 0)
		if s.N == 0 && bad == nil {
			bad = fault.Inputf("shard auto: JOB_COMPLETION_INDEX is set but JOB_COMPLETIONS is not; set it in the job's specification to its number of completions")
		}
	default:
		return Shard{}, fault.Inputf("shard auto: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set; run as a job array or give --shard K/N")
	}
	if bad != nil {
		return Shard{}, bad
	}
	if s.K < 1 || s.K > s.N {
		return Shard{}, fault.Inputf("shard auto: the environment says part %d of %d; expected 1 to %d; give --shard K/N", s.K, s.N, s.N)
	}
	return s, nil
}
