// One function a data set; each is in the file of that name, with its tokens where it has some.
#pragma once

#include "datasets/catalogue.h"

namespace assay {

DataSet fashion_images_set();
DataSet fashion_mnist_set();
DataSet janeausten_set();
DataSet mnist_set();
DataSet movielens_set();
DataSet sotu_set();
DataSet sotu_bpe_set();
DataSet spam_assassin_set();
DataSet spam_assassin_wordpiece_set();
DataSet text_images_set();

}  // namespace assay
