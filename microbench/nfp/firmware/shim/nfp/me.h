#include <nfp.h>
