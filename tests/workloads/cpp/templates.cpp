// Names that need demangling: a namespace, a template, an overloaded method and a lambda.
#include "../c/workload.h"

namespace furnace {

template <typename Fuel>
struct Stove {
    FRAME void heat(Fuel amount)
    {
        burn(static_cast<unsigned long>(amount));
        __asm__ volatile("");
    }

    FRAME void heat(Fuel amount, const char *)
    {
        auto stoke = [](Fuel more) FRAME {
            burn(static_cast<unsigned long>(more));
            __asm__ volatile("");
        };
        stoke(amount);
        __asm__ volatile("");
    }
};

}  // namespace furnace

int main()
{
    furnace::Stove<int> small;
    furnace::Stove<double> large;
    announce("");
    while (!stopped) {
        small.heat(50000);
        large.heat(50000.0, "coal");
    }
}
